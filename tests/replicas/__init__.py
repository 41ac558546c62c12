"""Several processes of the product on one PostgreSQL: whichever dies or stands still, nothing is lost or done twice."""
