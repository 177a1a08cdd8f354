"""The local stack: emulators of AWS and Kubernetes on one machine, the embedded default."""
