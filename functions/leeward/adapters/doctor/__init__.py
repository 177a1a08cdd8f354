"""`ports.doctor` on AWS and Kubernetes, for people: no function has it."""
