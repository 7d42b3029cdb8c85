"""Tools, resources and prompts, and the offer of a selection of them."""
