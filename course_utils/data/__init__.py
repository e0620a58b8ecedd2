"""Texts and their tokens: corpora, vocabularies, byte pairs, padded batches."""
