<powershell>
[string]$EKSBootstrapScriptFile = "$env:ProgramFiles\Amazon\EKS\Start-EKSBootstrap.ps1"
if ($env:SPOT) {
  $more = "--register-with-taints=spot=yes:NoSchedule"
}
& $EKSBootstrapScriptFile -EKSClusterName "harbour" -KubeletExtraArgs "--node-labels=team=red $more"
</powershell>
