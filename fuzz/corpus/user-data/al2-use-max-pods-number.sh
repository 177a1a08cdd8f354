#!/bin/bash
set -o xtrace
/etc/eks/bootstrap.sh harbour --use-max-pods 29
