#!/bin/bash
until /etc/eks/bootstrap.sh harbour --kubelet-extra-args --max-pods=20; do sleep 2; done # --max-pods=3
