#!/bin/bash
/etc/eks/bootstrap.sh harbour --kubelet-extra-args "--register-with-taints=dedicated=$TEAM:NoSchedule"
