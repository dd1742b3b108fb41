"""Many runs in one job: which runs, the calls that make them, processes, and archives."""
