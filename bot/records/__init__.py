"""What is kept: tables, engine, migrations. The only SQL there is."""
