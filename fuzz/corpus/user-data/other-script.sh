#!/bin/bash
yum install -y amazon-cloudwatch-agent
