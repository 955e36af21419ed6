"""Start processes under limits and end them with all their children."""
