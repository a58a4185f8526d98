"""Smithy's tradition: a strategy hands out tokens, and a shared quota says when to stop. Standard library only.

``protocols`` has the shapes that strategies, tokens and errors have, ours and other people's.

Source: the Smithy Python retry design, and the numbers of its shipped library and of the AWS SDKs.
"""
