"""The managers: buckets, collections, users and indexes of a cluster."""
