"""How clients run: tasks (`task`), the engines that run them, and which is chosen (`choose`)."""
