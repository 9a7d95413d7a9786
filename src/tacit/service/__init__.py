"""The query service: answers of stored teachers over HTTP, of which none leaves before it is on the disk."""
