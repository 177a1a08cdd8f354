"""API of one cluster behind `ports.kubernetes.Kubernetes`: a thin client on urllib3, because botocore already brings
it.

It uses the verbs of manifests/cluster-role.yaml and no others. It decides no eviction, it only carries them out."""
