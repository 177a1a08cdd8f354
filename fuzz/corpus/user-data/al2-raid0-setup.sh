#!/bin/bash
setup-local-disks raid0
/etc/eks/bootstrap.sh harbour
