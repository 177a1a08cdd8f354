#!/bin/bash
/etc/eks/bootstrap.sh harbour --kubelet-extra-args '--node-labels=team=red '"$EXTRA"
