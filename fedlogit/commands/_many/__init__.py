"""What `train_many`, `bundle`, `unpack` and `pull` share: runs to make, processes, archives."""
