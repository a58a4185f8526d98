"""The tests of all three packages; see README.md beside this file."""
