"""The laws that a driver of any machine keeps: on streams, bytes, time, tasks that wait, and strategies."""
