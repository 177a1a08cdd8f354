#!/bin/bash
/etc/eks/bootstrap.sh harbour
