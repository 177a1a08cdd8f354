"""One cluster's API behind `ports.Kubernetes`: a thin client on urllib3, because it is already there with botocore.

It speaks the verbs of manifests/cluster-role.yaml and no others. It decides no eviction, it only carries them out."""
