#!/bin/bash
/etc/eks/bootstrap.sh harbour --kubelet-extra-args '--node-labels=team=red --node-labels=disk=fast --kube-reserved=cpu=100m --kube-reserved=memory=700Mi'
