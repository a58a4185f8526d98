"""Range and sampling scans: what is asked for, how it travels, and how a vbucket is gone through."""
