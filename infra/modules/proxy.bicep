// HAProxy in front of the replicas: the ingress of the platform cannot hash, and each room lives on one replica.

@minLength(2)
@maxLength(32)
param name string
param location string
param tags object
param environmentId string
param image string
param customDomain string

@description('The replicas, HOST:PORT, as many as container/haproxy.cfg has lines for.')
param replicas array

resource proxy 'Microsoft.App/containerApps@2026-07-01' = {
  name: name
  location: location
  tags: tags
  properties: {
    environmentId: environmentId
    workloadProfileName: 'Consumption'
    configuration: {
      activeRevisionsMode: 'Single'
      ingress: {
        external: true
        targetPort: 8080
        transport: 'http'
        allowInsecure: false
        customDomains: empty(customDomain) ? [] : [{ name: customDomain, bindingType: 'Auto' }]
      }
      // No secret, but a secret is how the platform makes a file.
      secrets: [{ name: 'haproxy', value: loadTextContent('../../container/haproxy.cfg') }]
    }
    template: {
      containers: [
        {
          name: 'haproxy'
          image: image
          env: [
            { name: 'PROBE_LISTEN', value: '*:8080' }
            { name: 'PROBE_REPLICA_1', value: replicas[0] }
            { name: 'PROBE_REPLICA_2', value: replicas[1] }
            { name: 'PROBE_REPLICA_3', value: replicas[2] }
          ]
          resources: { cpu: json('0.25'), memory: '0.5Gi' }
          volumeMounts: [{ volumeName: 'configuration', mountPath: '/usr/local/etc/haproxy' }]
          probes: [
            {
              type: 'Liveness'
              tcpSocket: { port: 8080 }
              periodSeconds: 10
              failureThreshold: 3
            }
            {
              // any replica that takes new rooms
              type: 'Readiness'
              httpGet: { path: '/ready', port: 8080 }
              periodSeconds: 5
              failureThreshold: 2
              timeoutSeconds: 5
            }
          ]
        }
      ]
      volumes: [
        {
          name: 'configuration'
          storageType: 'Secret'
          secrets: [{ secretRef: 'haproxy', path: 'haproxy.cfg' }]
        }
      ]
      // Any number of them leads a room to the same replica; one carries 8,000 connections.
      scale: { minReplicas: 1, maxReplicas: 1 }
    }
  }
}
