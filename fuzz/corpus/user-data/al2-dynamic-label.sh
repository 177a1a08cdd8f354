#!/bin/bash
ID=$(curl -s http://169.254.169.254/latest/meta-data/instance-id)
/etc/eks/bootstrap.sh harbour --kubelet-extra-args "--node-labels=team=red,instance=$ID,tier=web"
