"""Tests of all three packages; see README.md in this folder."""
