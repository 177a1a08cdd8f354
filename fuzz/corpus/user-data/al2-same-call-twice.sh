#!/bin/bash
/etc/eks/bootstrap.sh harbour --kubelet-extra-args '--max-pods=20'
sleep 5
/etc/eks/bootstrap.sh harbour --kubelet-extra-args '--max-pods=20'
