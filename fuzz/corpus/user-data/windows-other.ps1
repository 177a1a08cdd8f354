<powershell>
Set-TimeZone -Id UTC
</powershell>
