#!/bin/bash
sysctl -w vm.nr_hugepages=1024
/etc/eks/bootstrap.sh blue --kubelet-extra-args '--node-labels=team=red'
