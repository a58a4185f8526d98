"""The driver: it brings the machine what happens, and carries out what that orders."""
