#!/bin/bash
/etc/eks/bootstrap.sh harbour --kubelet-extra-args '--node-labels=Team!=red,team=red,long=xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx --register-with-taints=a=b:NoWay,dedicated=red:NoSchedule'
