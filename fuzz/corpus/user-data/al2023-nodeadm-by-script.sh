#!/bin/bash
cat > /opt/node.yaml <<EOF
apiVersion: node.eks.aws/v1alpha1
kind: NodeConfig
spec:
  kubelet: {config: {maxPods: 12}}
EOF
nodeadm init -c file:///opt/node.yaml
