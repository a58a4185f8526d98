"""Couchbase's variant of the memcached binary protocol: conversion between bytes and frames."""
