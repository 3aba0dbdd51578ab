"""Tables -> figures: for the page (`Drawing`), and for papers (`pictures`)."""
