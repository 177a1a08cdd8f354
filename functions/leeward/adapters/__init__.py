"""The real ports: the only room that imports botocore or urllib3, reads the environment and tells the time.

It carries calls out and turns their errors into Leeward's tree. It decides nothing about nodes."""
