"""Operations of the key-value service: values, results, and their codecs."""
