"""Pictures of reports in the documentation, made again by `make pictures`."""
