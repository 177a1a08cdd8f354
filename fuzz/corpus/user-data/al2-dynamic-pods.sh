#!/bin/bash
MAX=$(/etc/eks/max-pods-calculator.sh --instance-type-from-imds --cni-version 1.18.0)
/etc/eks/bootstrap.sh harbour --use-max-pods false --kubelet-extra-args "--max-pods=$MAX"
