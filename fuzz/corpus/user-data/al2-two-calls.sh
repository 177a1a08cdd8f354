#!/bin/bash
/etc/eks/bootstrap.sh harbour --kubelet-extra-args '--node-labels=team=red,pool=a --max-pods=20'
/etc/eks/bootstrap.sh harbour --kubelet-extra-args '--node-labels=team=red,pool=b --max-pods=25'
