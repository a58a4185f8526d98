"""Range scans and samples: requests, their codec, and the machine that scans all vbuckets."""
