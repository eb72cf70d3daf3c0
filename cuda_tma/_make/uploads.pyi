"""What maps were uploaded to: nothing here is for Python."""
