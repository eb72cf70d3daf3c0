"""Pictures of tiles, boxes and banks, and tables of parameters for notebooks."""
