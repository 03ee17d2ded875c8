"""The models of a run: tiny ones made from nothing, pretrained ones, their messages, and sampling from them."""
