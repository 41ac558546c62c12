"""Who a request acts for: people who sign in on the web page, and programs that send a token."""
