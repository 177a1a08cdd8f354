"""AWS Fault Injection Service: experiment templates, and experiments that interrupt spot instances or shift a zone."""
