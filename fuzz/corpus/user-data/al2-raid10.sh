#!/bin/bash
/etc/eks/bootstrap.sh harbour --local-disks raid10
