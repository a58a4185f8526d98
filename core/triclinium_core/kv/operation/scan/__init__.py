"""Range and sampling scans: requests, codec, and the machine that scans all vbuckets."""
