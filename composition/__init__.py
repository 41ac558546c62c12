"""What `app.py` puts together that is more than a line or two."""
