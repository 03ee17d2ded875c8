"""The Docker backend: containers of an image of our own, each with the local backend inside.

Only this side talks to the engine; what runs in the image are the modules above it, without it.
"""
