#!/bin/bash
source /opt/site/settings
/etc/eks/bootstrap.sh harbour --kubelet-extra-args "$SITE_ARGS"
