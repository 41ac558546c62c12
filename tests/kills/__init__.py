"""The product is killed, again and again, and nothing is lost and nothing happens twice."""
